//! The table: what was measured, against which floor, and whether the aim was reached.

use std::fmt::{self, Write as _};

/// One line. Empty cells mean that there is no such thing for this line.
#[derive(Debug, Default)]
pub struct Row {
    what: String,
    value: String,
    floor: String,
    ratio: String,
    aim: String,
    met: Option<bool>,
}

/// What a number should be.
#[derive(Debug, Clone, Copy)]
pub enum Aim {
    AtMost(f64),
    AtLeast(f64),
}

impl Aim {
    fn is_met(self, value: f64) -> bool {
        match self {
            Self::AtMost(limit) => value <= limit,
            Self::AtLeast(limit) => value >= limit,
        }
    }
}

impl Row {
    pub fn new(what: impl Into<String>, value: impl Into<String>) -> Self {
        Self { what: what.into(), value: value.into(), ..Self::default() }
    }

    #[must_use]
    pub fn floor(mut self, floor: impl Into<String>, ratio: f64) -> Self {
        self.floor = floor.into();
        self.ratio = format!("{ratio:.2}×");
        self
    }

    /// `value` is what the aim is about: the measured number, or its ratio to the floor.
    #[must_use]
    pub fn aim(mut self, aim: Aim, unit: &str, value: f64) -> Self {
        self.met = Some(aim.is_met(value));
        self.aim_unmeasured(aim, unit)
    }

    /// An aim that is only stated when what was measured cannot be compared with it.
    #[must_use]
    pub fn aim_if(self, judged: bool, aim: Aim, unit: &str, value: f64) -> Self {
        if judged { self.aim(aim, unit, value) } else { self.aim_unmeasured(aim, unit) }
    }

    /// An aim that nothing was measured for: neither met nor missed.
    #[must_use]
    pub fn aim_unmeasured(mut self, aim: Aim, unit: &str) -> Self {
        let (sign, limit) = match aim {
            Aim::AtMost(limit) => ('≤', limit),
            Aim::AtLeast(limit) => ('≥', limit),
        };
        self.aim = format!("{sign} {limit}{unit}");
        self
    }
}

/// Rows as a Markdown table, aligned so that it reads in a terminal, too.
pub struct Table(pub Vec<Row>);

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let head = ["What", "Measured", "Floor", "Ratio", "Aim", "Met"].map(str::to_owned);
        let lines: Vec<[String; 6]> = std::iter::once(head).chain(self.0.iter().map(cells)).collect();
        let widths: Vec<usize> = (0..6)
            .map(|column| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0))
            .collect();
        for (number, line) in lines.iter().enumerate() {
            let mut text = String::from("|");
            for (cell, width) in line.iter().zip(&widths) {
                write!(text, " {cell:width$} |")?;
            }
            writeln!(f, "{text}")?;
            if number == 0 {
                let rule: Vec<String> = widths.iter().map(|width| "-".repeat(width + 2)).collect();
                writeln!(f, "|{}|", rule.join("|"))?;
            }
        }
        Ok(())
    }
}

fn cells(row: &Row) -> [String; 6] {
    let met = match row.met {
        Some(true) => "yes",
        Some(false) => "**no**",
        None => "",
    };
    [&row.what, &row.value, &row.floor, &row.ratio, &row.aim, met].map(|cell: &str| cell.to_owned())
}

#[cfg(test)]
mod tests {
    use super::{Aim, Row, Table};

    #[test]
    fn an_aim_is_judged_and_the_columns_line_up() {
        let fast = Row::new("fast", "10 µs").floor("5 µs", 2.0).aim(Aim::AtMost(2.5), "×", 2.0);
        let slow = Row::new("slow", "3/s").aim(Aim::AtLeast(5.0), "/s", 3.0);
        let text = Table(vec![fast, slow, Row::new("floor", "1")]).to_string();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[2], "| fast  | 10 µs    | 5 µs  | 2.00× | ≤ 2.5× | yes    |");
        assert_eq!(lines[3], "| slow  | 3/s      |       |       | ≥ 5/s  | **no** |");
        assert!(lines.iter().all(|line| line.chars().count() == lines[0].chars().count()));
    }
}
