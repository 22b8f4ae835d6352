//! The right to work for a consumer or projection: held by one at a time, and renewed for as long as the work takes.

use std::pin::pin;
use std::time::Duration;

use db::{DbError, Internal, Settings};

use crate::settings::CONSUMER_LEASE_SECONDS;
use crate::store;

/// A lease that was taken. The database's clock decides when it ends, and the token whether it is still this one.
pub(crate) struct Lease<'a> {
    pub internal: &'a Internal,
    pub settings: &'a Settings,
    pub name: &'static str,
    pub token: i64,
}

impl Lease<'_> {
    /// Does `work` without letting the lease run out, however long it takes. If the lease is lost all the same, the
    /// work is dropped where it stands, as in a crash: someone else has begun it anew.
    pub async fn hold<T>(&self, attempts: i32, work: impl Future<Output = T>) -> Result<T, DbError> {
        let renewing = async {
            loop {
                tokio::time::sleep(seconds(self.settings) / 3).await;
                match self.try_renew(attempts).await {
                    Ok(true) => {}
                    Ok(false) => return lost(),
                    // The work may be done before the lease is over; the token tells at the end.
                    Err(error) => {
                        tracing::warn!(consumer = self.name, %error, "lease not renewed, will try again")
                    }
                }
            }
        };
        let (work, renewing) = (pin!(work), pin!(renewing));
        tokio::select! {
            biased;
            value = work => Ok(value),
            lost = renewing => Err(lost),
        }
    }

    pub async fn renew(&self, attempts: i32) -> Result<(), DbError> {
        if self.try_renew(attempts).await? { Ok(()) } else { Err(lost()) }
    }

    /// False if the lease is someone else's by now.
    async fn try_renew(&self, attempts: i32) -> Result<bool, DbError> {
        let params: db::Params<'_> =
            &[&self.name, &self.token, &seconds(self.settings).as_secs_f64(), &attempts];
        let rows = self.internal.bookkeeping_one(&["spine.consumer"], store::CONSUMER_RENEW, params).await?;
        Ok(!rows.is_empty())
    }

    /// A clean hand-over: the next replica need not wait for the lease to run out.
    pub async fn free(&self) {
        let params: db::Params<'_> = &[&self.name, &self.token];
        let freed = self.internal.bookkeeping_one(&["spine.consumer"], store::CONSUMER_FREE, params).await;
        if let Err(error) = freed {
            tracing::debug!(consumer = self.name, %error, "lease left to run out");
        }
    }
}

pub(crate) fn seconds(settings: &Settings) -> Duration {
    CONSUMER_LEASE_SECONDS.seconds(settings)
}

pub(crate) fn lost() -> DbError {
    DbError::Unexpected("the lease was taken over by another worker".to_owned())
}
