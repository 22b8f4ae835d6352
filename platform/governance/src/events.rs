//! What others may know of this domain.

use db::event;
use schemars::JsonSchema;
use serde::Serialize;

use crate::model::SettingState;

event!(SettingSet { setting: SettingState }, "gpuaas.governance.setting.set", "A setting was set");
event!(
    SettingCleared { setting: SettingState },
    "gpuaas.governance.setting.cleared",
    "A setting was taken back"
);
