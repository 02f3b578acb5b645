//! Errors: the chain of places, marks of functions, what may be caught; and sets of templates.

// Test code, though not in a #[test] function.
#![allow(clippy::unwrap_used)]

mod support;

use std::sync::Arc;
use std::time::SystemTime;

use catamaran_gotemplate::{
    Budget, Call, Ctx, Error, ErrorKind, Func, FuncError, Functions, MissingKey, Str, TemplateSet,
    Type, Value,
};

fn set(files: &[(&str, &str)]) -> TemplateSet {
    let mut functions = support::functions();
    functions.insert(Func::new("required", &[Type::String], |_, args| {
        Err(FuncError::tagged("required", args[0].as_str().map(Str::to_string).unwrap_or_default()))
    }));
    let mut set = TemplateSet::new(Arc::new(functions), MissingKey::Zero);
    for (name, text) in files {
        set.parse(name, text).unwrap();
    }
    set
}

fn ctx() -> Ctx {
    Ctx::new(Budget::default(), SystemTime::UNIX_EPOCH, 7)
}

fn run(set: &TemplateSet, name: &str) -> Result<Str, Error> {
    set.execute(&mut ctx(), name, &Value::Nil)
}

#[test]
fn the_chain_goes_from_the_file_to_the_cause() {
    let set = set(&[
        ("c/templates/_h.tpl", "{{define \"h\"}}\n  {{ required \"need it\" }}{{end}}"),
        ("c/templates/a.yaml", "x: 1\ny: {{ include \"h\" . | print }}"),
    ]);
    let error = run(&set, "c/templates/a.yaml").unwrap_err();
    assert_eq!(
        error.to_string(),
        "template: c/templates/a.yaml:2:6: executing \"c/templates/a.yaml\" at <include \"h\" .>: \
         error calling include: template: c/templates/_h.tpl:2:5: executing \"h\" at \
         <required \"need it\">: error calling required: need it"
    );
    assert_eq!(error.kind(), ErrorKind::Exec);
    assert_eq!(error.tag(), Some("required"));
    assert_eq!(error.root_message(), "error calling required: need it");
    let places: Vec<_> = error
        .places()
        .iter()
        .map(|place| (place.file.as_str(), place.line, place.column, place.template.as_str()))
        .collect();
    assert_eq!(
        places,
        [("c/templates/a.yaml", 2, 6, "c/templates/a.yaml"), ("c/templates/_h.tpl", 2, 5, "h")]
    );
    assert_eq!(error.places()[0].message, "error calling include");
    assert_eq!(error.places()[1].message, "error calling required: need it");
    assert_eq!(error.places()[1].expression, "required \"need it\"");
}

#[test]
fn parse_errors_name_file_and_line() {
    let mut set = TemplateSet::new(Arc::new(Functions::new()), MissingKey::Zero);
    let error = set.parse("a.yaml", "\n\n{{ nope }}").unwrap_err();
    assert_eq!(error.to_string(), "template: a.yaml:3: function \"nope\" not defined");
    assert_eq!((error.kind(), error.places()[0].line), (ErrorKind::Parse, 3));
    assert!(!set.contains("a.yaml"));
}

#[test]
fn the_last_definition_counts_unless_it_is_empty() {
    let set = set(&[
        ("1", "{{define \"x\"}}one{{end}}"),
        ("2", "{{define \"x\"}}two{{end}}"),
        ("3", "{{define \"x\"}} {{/* nothing */}}\n{{end}}"),
        ("main", "{{template \"x\"}} {{include \"1\" .}}"),
    ]);
    assert_eq!(run(&set, "main").unwrap(), "two ");
    assert!(set.contains("x") && set.contains("3") && !set.contains("4"));
}

#[test]
fn a_file_is_a_template_and_unknown_ones_are_an_error() {
    let error = run(&set(&[("a", "")]), "b").unwrap_err();
    assert_eq!(error.to_string(), "template: no template \"b\" associated with template \"gotpl\"");
}

#[test]
fn functions_replace_gos_own() {
    let mut functions = Functions::new();
    functions.insert(Func::new("and", &[], |_, _| Ok("mine".into())).variadic(Type::Any));
    functions.remove("html");
    let mut set = TemplateSet::new(Arc::new(functions), MissingKey::Zero);
    set.parse("a", "{{and 1 2}}").unwrap();
    assert_eq!(run(&set, "a").unwrap(), "mine");
    assert!(set.parse("b", "{{html 1}}").is_err());
}

#[test]
fn a_function_may_catch_the_error_of_its_template() {
    let mut functions = support::functions();
    functions.insert(Func::engine("try", &[Type::String], |_, args| {
        Ok(Call::Template {
            name: args[0].as_str().cloned().unwrap_or_default(),
            data: Value::Nil,
            then: |_, _, output| Ok(output.map_or_else(|_| "caught".into(), Value::from)),
        })
    }));
    let mut set = TemplateSet::new(Arc::new(functions), MissingKey::Zero);
    let text = "{{define \"bad\"}}out{{range list 1 2}}{{with .}}{{fail \"x\"}}{{end}}{{end}}{{end}}\
                {{range list 1 2}}{{.}}{{print \"a\" (try \"bad\") .}};{{end}}";
    set.parse("a", text).unwrap();
    assert_eq!(run(&set, "a").unwrap(), "1acaught1;2acaught2;");
    set.parse("b", "{{try \"loop\"}}{{define \"loop\"}}{{range 1000000000}}{{end}}{{end}}")
        .unwrap();
    let budget = Budget { steps: 1000, ..Budget::default() };
    let mut ctx = Ctx::new(budget, SystemTime::UNIX_EPOCH, 0);
    let error = set.execute(&mut ctx, "b", &Value::Nil).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Steps);
    assert!(error.to_string().starts_with("template: b:1:"), "{error}");
}

#[test]
fn changes_to_values_last_for_the_rendering() {
    let mut functions = support::functions();
    functions.insert(Func::new("set", &[Type::MAP, Type::String, Type::Any], |ctx, args| {
        let map = args[0].as_map().ok_or("no map")?;
        let key = args[1].as_str().cloned().ok_or("no key")?;
        ctx.heap.set(map, key, args[2].clone());
        Ok(args[0].clone())
    }));
    let mut set = TemplateSet::new(Arc::new(functions), MissingKey::Zero);
    set.parse("a", "{{$x := set .m \"k\" .}}{{.m.k.m.k.m.n}}").unwrap();
    set.parse("b", "{{len .m}}").unwrap();
    let mut ctx = ctx();
    let (root, inner) = (ctx.heap.new_map(), ctx.heap.new_map());
    ctx.heap.set(root, "m", inner);
    ctx.heap.set(inner, "n", Value::Int64(5));
    assert_eq!(set.execute(&mut ctx, "a", &root.into()).unwrap(), "5");
    assert_eq!(set.execute(&mut ctx, "b", &root.into()).unwrap(), "2");
}

#[test]
fn sets_are_shared_between_threads() {
    fn shared<T: Send + Sync>(_: &T) {}
    let set = set(&[("a", "{{range 1000}}{{.}}{{end}}")]);
    shared(&set);
    let outputs: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(|| run(&set, "a").unwrap())).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(outputs.windows(2).all(|pair| pair[0] == pair[1]));
}
