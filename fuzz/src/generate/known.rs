//! The functions, by what people read of them.

use std::sync::LazyLock;

use catamaran_chart::reference::{Func, Item, Type, functions};

/// A function, by what people read of it.
pub struct Known {
    pub func: &'static Func,
    pub parameters: Vec<Parameter>,
    /// What it gives: `string`, `list`, `any`, ...
    pub result: &'static str,
}

#[derive(Clone, Copy)]
pub struct Parameter {
    /// `LENGTH`
    pub word: &'static str,
    pub ty: Type,
    /// May be left out, or given several times.
    pub optional: bool,
}

impl Parameter {
    /// What a function must give to be an argument here.
    pub fn wants(self) -> &'static str {
        match (self.ty, self.word) {
            (Type::String, _) => "string",
            (Type::Int, _) => "int",
            (Type::Int64, _) => "int64",
            (Type::Float64, _) => "float64",
            (Type::Bool, _) => "bool",
            (Type::Map(_), _) | (_, "MAP") => "map",
            (Type::List(_), _) | (_, "LIST") => "list",
            (_, "CA") => "certificate",
            (Type::Named(_), _) | (_, "DATE" | "TIME") => "time",
            (_, "NUMBER") => "int64",
            (_, "DURATION") => "duration",
            _ => "any",
        }
    }
}

/// All functions, in a stable order.
pub static FUNCTIONS: LazyLock<Vec<Known>> = LazyLock::new(|| {
    let mut all: Vec<_> = functions().map(known).collect();
    all.sort_by_key(|known| known.func.name());
    all
});

fn known(item: &'static Item) -> Known {
    let (words, result) = item.usage.split_once("-> ").unwrap_or((item.usage, "any"));
    let types = item
        .func
        .params()
        .iter()
        .copied()
        .chain(std::iter::repeat(item.func.variadic_type().unwrap_or(Type::Any)));
    let parameters = words.split_whitespace().zip(types).map(|(word, ty)| Parameter {
        word: word.trim_matches(['[', ']', '.']),
        ty,
        optional: word.starts_with('[') || word.ends_with("..."),
    });
    Known { func: &item.func, parameters: parameters.collect(), result }
}
