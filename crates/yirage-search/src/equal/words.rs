//! A certificate for readers: what was shown, by which method, for which sizes and inputs, and what was assumed.

use super::certificate::{Certificate, ClassEvidence};
use super::described;

impl Certificate {
    /// What was shown and what was assumed, a line for each fact.
    pub fn in_words(&self) -> Vec<String> {
        let mut lines = vec![format!(
            "method: both graphs on random inputs over finite fields, where equality is exact, and then in floats, where \
             the candidate must be as good as the original; checker version {}, seed {}",
            self.version, self.seed
        )];
        let sizes: Vec<String> = self.sizes.iter().map(described).collect();
        lines.push(format!("domain: {}; inputs of these types, whatever they hold", sizes.join("; ")));
        lines.extend(self.fields.iter().map(|field| {
            let (p, q, trials, compared, elements) = (field.p, field.q, field.trials, field.compared, field.elements);
            format!(
                "over the field of {p} elements, with exponents modulo {q}: {compared} of {elements} elements of outputs \
                 were compared in {trials} trials at each of the sizes, and all are equal"
            )
        }));
        lines.push(self.chance());
        lines.push(self.floats());
        lines.push(
            "assumed: numbers are real but where floats are compared; exp(a + b) is exp(a) exp(b); of log, a root that is no \
             whole number, erf and comparisons no more than that equal arguments give equal values; kernels compute what \
             their ops say"
                .into(),
        );
        lines
    }

    fn chance(&self) -> String {
        match self.false_accept_log2() {
            log2 if log2 < 0.0 => format!("different functions pass with a probability of at most 2^{log2:.1}"),
            _ => "there is no bound below 1 of the probability that different functions pass".into(),
        }
    }

    fn floats(&self) -> String {
        let names: Vec<String> = self.classes.iter().map(|of| of.class.to_string()).collect();
        let sum = |of: fn(&ClassEvidence) -> u64| self.classes.iter().map(of).sum::<u64>();
        let share = |of: &&ClassEvidence| if of.bound > 0.0 { of.error / of.bound } else { 0.0 };
        let worst = self.classes.iter().max_by(|a, b| share(a).total_cmp(&share(b)));
        let worst = worst.map_or_else(String::new, |of| {
            format!(
                "; the one closest to its bound is {:.2e} off, of {:.2e} that are allowed, on {} inputs",
                of.error, of.bound, of.class
            )
        });
        format!(
            "in floats: {} elements are within the bound of the original's own rounding on inputs of the classes {}, and {} \
             are open, as that rounding leaves every value possible{worst}",
            sum(|of| of.judged),
            names.join(", "),
            sum(|of| of.open),
        )
    }
}
