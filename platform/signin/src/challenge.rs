//! Asking for a stronger or fresher login (RFC 9470).

use std::time::Duration;

/// The value of `WWW-Authenticate` that tells a client what to ask the provider for. `acr_values` is a wish and `max_age` a
/// demand; what counts is what the next id token says.
pub fn step_up_challenge(acr_values: &[&str], max_age: Option<Duration>) -> String {
    let mut text = "Bearer error=\"insufficient_user_authentication\", \
                    error_description=\"A stronger or more recent sign-in is required\""
        .to_owned();
    // They are separated by spaces inside quotes, so what holds either is no value; none of those we know does.
    let sound = |value: &&&str| {
        !value.is_empty() && value.bytes().all(|b| b.is_ascii_graphic() && !matches!(b, b'"' | b'\\'))
    };
    let values: Vec<&str> = acr_values.iter().filter(sound).copied().collect();
    if !values.is_empty() {
        text += &format!(", acr_values=\"{}\"", values.join(" "));
    }
    if let Some(age) = max_age {
        text += &format!(", max_age=\"{}\"", age.as_secs());
    }
    text
}
