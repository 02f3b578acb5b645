//! A function with what people read about it: the reference page and the coverage table are made
//! of these.

use crate::func::Func;

/// Where a function comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// Go's text/template.
    Go,
    /// The library Sprig.
    Sprig,
    /// Helm itself.
    Helm,
}

/// A function: what the engine calls, and what people read.
#[derive(Clone, Debug)]
pub struct Item {
    /// Name, types of the parameters, and body.
    pub func: Func,
    /// Where it comes from.
    pub origin: Origin,
    /// Parameters and result as people read them: `LENGTH TEXT -> string`. `[X]` may be left out,
    /// `X...` may be given any number of times.
    pub usage: &'static str,
    /// What it does, in one or two sentences.
    pub doc: &'static str,
    /// The name that the examples are written with; that of the function or of its alias.
    written_for: &'static str,
    /// Template texts and what they print.
    examples: &'static [(&'static str, &'static str)],
}

/// A template that calls a function, and what comes of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Example {
    /// The template's text.
    pub template: String,
    /// What it prints, or how its error ends.
    pub output: Result<&'static str, &'static str>,
}

impl Item {
    /// A function with its texts. An example is a template and its output; `error: ` in front of
    /// an output stands for an error that ends so. `written_for` is the name that the examples
    /// call, for a function of several names.
    pub const fn new(
        func: Func,
        origin: Origin,
        usage: &'static str,
        doc: &'static str,
        (written_for, examples): (&'static str, &'static [(&'static str, &'static str)]),
    ) -> Self {
        Self { func, origin, usage, doc, written_for, examples }
    }

    /// The examples, calling the function by its own name.
    pub fn examples(&self) -> impl Iterator<Item = Example> + '_ {
        self.examples.iter().map(|(template, output)| Example {
            template: self.renamed(template),
            output: output.strip_prefix("error: ").map_or(Ok(*output), Err),
        })
    }

    fn renamed(&self, template: &str) -> String {
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let mut renamed = String::with_capacity(template.len());
        let mut rest = template;
        while let Some(start) = rest.find(is_word) {
            let (before, word) = rest.split_at(start);
            let (word, after) = word.split_at(word.find(|c| !is_word(c)).unwrap_or(word.len()));
            renamed.push_str(before);
            renamed.push_str(if word == self.written_for { self.func.name() } else { word });
            rest = after;
        }
        renamed + rest
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::Value;

    #[test]
    fn examples_call_the_function_by_its_own_name() {
        let func = Func::new("tuple", &[], |_, _| Ok(Value::Nil));
        let examples = &[("{{ list 1 }} listed list", "x"), ("{{ list }}", "error: no")];
        let item = Item::new(func, Origin::Sprig, "VALUE... -> list", "", ("list", examples));
        let examples: Vec<_> = item.examples().collect();
        assert_eq!(examples[0].template, "{{ tuple 1 }} listed tuple");
        assert_eq!((examples[0].output, examples[1].output), (Ok("x"), Err("no")));
    }
}
