//! `strftime_now`: the calendar in UTC, from seconds since 1970, with the format letters templates use.

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const DAYS: [&str; 7] = ["Thursday", "Friday", "Saturday", "Sunday", "Monday", "Tuesday", "Wednesday"];

/// Formats `seconds` since 1970-01-01 UTC. Unknown letters stay as they are.
pub(super) fn strftime(seconds: i64, format: &str) -> String {
    let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let (year, month, day) = civil(days);
    let (hour, minute) = (second / 3600, second / 60 % 60);
    let (month_name, day_name) = (MONTHS[month as usize - 1], DAYS[days.rem_euclid(7) as usize]);
    let hour12 = (hour + 11) % 12 + 1;
    let mut out = String::new();
    let mut letters = format.chars();
    while let Some(c) = letters.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        let mut letter = letters.next();
        let bare = letter == Some('-');
        if bare {
            letter = letters.next();
        }
        let pad = |n: i64| if bare { n.to_string() } else { format!("{n:02}") };
        let text = match letter {
            Some('Y') => year.to_string(),
            Some('y') => pad(year.rem_euclid(100)),
            Some('m') => pad(month),
            Some('d') => pad(day),
            Some('e') => format!("{day:2}"),
            Some('H') => pad(hour),
            Some('I') => pad(hour12),
            Some('M') => pad(minute),
            Some('S') => pad(second % 60),
            Some('p') => if hour < 12 { "AM" } else { "PM" }.to_owned(),
            Some('B') => month_name.to_owned(),
            Some('b' | 'h') => month_name[..3].to_owned(),
            Some('A') => day_name.to_owned(),
            Some('a') => day_name[..3].to_owned(),
            Some('j') => {
                let of_year = days - days_from_civil_new_year(days, month, day);
                if bare { of_year.to_string() } else { format!("{of_year:03}") }
            }
            Some('F') => format!("{year}-{month:02}-{day:02}"),
            Some('D') => format!("{month:02}/{day:02}/{:02}", year.rem_euclid(100)),
            Some('R') => format!("{hour:02}:{minute:02}"),
            Some('C') => pad(year.div_euclid(100)),
            Some('u') => ((days + 3).rem_euclid(7) + 1).to_string(),
            Some('w') => (days + 4).rem_euclid(7).to_string(),
            Some('n') => "\n".to_owned(),
            Some('t') => "\t".to_owned(),
            Some('T') => format!("{hour:02}:{minute:02}:{:02}", second % 60),
            Some('Z') => "UTC".to_owned(),
            Some('z') => "+0000".to_owned(),
            Some('%') => "%".to_owned(),
            Some(other) => format!("%{other}"),
            None => "%".to_owned(),
        };
        out.push_str(&text);
    }
    out
}

/// The day before this year's first, so that the difference counts from 1.
fn days_from_civil_new_year(days: i64, month: i64, day: i64) -> i64 {
    let mut first = days - (day - 1);
    for back in (1..month).rev() {
        let (year, _, _) = civil(first - 1);
        let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        first -= match back {
            2 if leap => 29,
            2 => 28,
            4 | 6 | 9 | 11 => 30,
            _ => 31,
        };
    }
    first - 1
}

/// Year, month and day of a day number in the proleptic Gregorian calendar (eras of 400 years beginning in March).
fn civil(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let (era, of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * of_year + 2) / 153;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, of_year - (153 * from_march + 2) / 5 + 1)
}

#[cfg(test)]
mod tests {
    use super::strftime;

    #[test]
    fn known_moments() {
        assert_eq!(strftime(0, "%A %d %B %Y %H:%M:%S %j"), "Thursday 01 January 1970 00:00:00 001");
        assert_eq!(strftime(951_827_696, "%a %-d %b %Y %I:%M %p, day %j"), "Tue 29 Feb 2000 12:34 PM, day 060");
        assert_eq!(strftime(1_735_689_599, "%F %T %y %e%%"), "2024-12-31 23:59:59 24 31%");
        assert_eq!(strftime(1_735_689_599, "%j"), "366");
        assert_eq!(strftime(-1, "%d %b %Y%"), "31 Dec 1969%");
    }
}
