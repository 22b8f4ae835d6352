//! Counted places: how many of something one holder may have under way at the same time.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Places taken, by holder. Who holds none is not remembered, so memory is bounded by what is under way.
#[derive(Default)]
pub struct Places {
    taken: Mutex<HashMap<String, u32>>,
}

/// One of a holder's places, free again when dropped.
pub struct Place {
    places: Arc<Places>,
    holder: String,
}

impl Places {
    /// A place for `holder`, unless it has `most` already.
    pub fn take(self: &Arc<Self>, holder: &str, most: u32) -> Option<Place> {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let count = taken.entry(holder.to_owned()).or_default();
        if *count >= most {
            return None;
        }
        *count += 1;
        Some(Place { places: Arc::clone(self), holder: holder.to_owned() })
    }
}

impl Place {
    /// How many its holder has, this one among them.
    pub fn taken(&self) -> u32 {
        let taken = self.places.taken.lock().unwrap_or_else(PoisonError::into_inner);
        taken.get(&self.holder).copied().unwrap_or_default()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.places.taken.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = taken.get_mut(&self.holder) {
            *count -= 1;
            if *count == 0 {
                taken.remove(&self.holder);
            }
        }
    }
}
