//! The functions and objects that the cases use; the Go program that answers them has the same.
#![allow(missing_docs, dead_code)]
// Test code, though not in a #[test] function; and bodies of functions must return a Result.
#![allow(clippy::unwrap_used, clippy::unnecessary_wraps)]
#![allow(clippy::cast_precision_loss, clippy::cast_possible_wrap)]

use std::sync::Arc;
use std::time::SystemTime;

use catamaran_gotemplate::{
    Budget, Call, Ctx, Error, Func, FuncError, Functions, Heap, Method, MissingKey, NamedType,
    Object, Seed, Str, TemplateSet, Type, TypedNil, Value, fmt,
};
use serde::de::DeserializeSeed as _;

type Result<T = Value, E = FuncError> = std::result::Result<T, E>;

#[derive(Debug)]
struct Thing {
    inner: Value,
}

static THING: NamedType = NamedType {
    name: "*main.Thing",
    underlying: Type::Pointer,
    methods: &[
        Method {
            name: "Greet",
            params: &[Type::String],
            variadic: None,
            call: |_, _, args| Ok(format!("hello {}", text(&args[0])).into()),
        },
        Method {
            name: "Sum",
            params: &[],
            variadic: Some(Type::Int),
            call: |_, _, args| Ok(Value::Int(args.iter().filter_map(Value::as_int).sum())),
        },
        Method {
            name: "Broken",
            params: &[],
            variadic: None,
            call: |_, _, _| Err("it broke".into()),
        },
        Method { name: "Nothing", params: &[], variadic: None, call: |_, _, _| Ok(Value::Nil) },
    ],
};

impl Object for Thing {
    fn go_type(&self) -> &'static NamedType {
        &THING
    }

    fn field(&self, _: &mut Heap, name: &str) -> Option<Value> {
        self.fields().into_iter().find(|field| field.0 == name).map(|field| field.1)
    }

    fn fields(&self) -> Vec<(&'static str, Value)> {
        let inner = self.inner.clone();
        vec![
            ("Name", "thing".into()),
            ("Inner", inner),
            ("Empty", Value::Nil),
            ("secret", Value::Int(0)),
        ]
    }
}

#[derive(Debug)]
struct Duration(i64);

static DURATION: NamedType =
    NamedType { name: "time.Duration", underlying: Type::Int64, methods: &[] };

impl Object for Duration {
    fn go_type(&self) -> &'static NamedType {
        &DURATION
    }

    fn int(&self) -> Option<i64> {
        Some(self.0)
    }

    fn text(&self) -> Option<String> {
        Some(match self.0 {
            n if n < 1000 => format!("{n}ns"),
            n if n < 1_000_000 => format!("{}µs", fmt::float(n as f64 / 1e3)),
            n if n < 60_000_000_000 => format!("{}s", fmt::float(n as f64 / 1e9)),
            n => format!("{}m{}s", n / 60_000_000_000, n / 1_000_000_000 % 60),
        })
    }
}

static WANT_DURATION: &[Type] = &[Type::Named(&DURATION)];

static NAMED: NamedType = NamedType {
    name: "main.Named",
    underlying: Type::MAP,
    methods: &[
        Method {
            name: "Hello",
            params: &[],
            variadic: None,
            call: |ctx, map, _| {
                let len = ctx.heap.map(map.as_map().unwrap()).entries.len();
                Ok(format!("named with {len}").into())
            },
        },
        Method {
            name: "Pick",
            params: &[Type::String],
            variadic: None,
            call: |ctx, map, args| {
                let found = ctx.heap.get(map.as_map().unwrap(), text(&args[0])).cloned();
                found.ok_or_else(|| format!("no {}", text(&args[0])).into())
            },
        },
    ],
};

fn text(value: &Value) -> &str {
    value.as_str().and_then(Str::as_str).unwrap()
}

fn same(_: &mut Ctx, args: &[Value]) -> Result {
    Ok(args[0].clone())
}

fn dict(ctx: &mut Ctx, args: &[Value]) -> Result {
    let map = ctx.heap.new_map();
    for pair in args.chunks_exact(2) {
        let key = ctx.print(&pair[0])?;
        ctx.heap.set(map, key, pair[1].clone());
    }
    Ok(map.into())
}

fn list_of(ty: Type) -> impl Fn(&mut Ctx, &[Value]) -> Value {
    move |ctx, args| ctx.heap.new_list_of(ty, args.to_vec()).into()
}

fn named(ctx: &mut Ctx, _: &[Value]) -> Result {
    let map = ctx.heap.new_map_of(Type::Named(&NAMED));
    ctx.heap.set(map, "a", Value::Int64(1));
    ctx.heap.set(map, "Hello", "hidden");
    Ok(map.into())
}

fn obj(ctx: &mut Ctx, _: &[Value]) -> Result {
    let inner = ctx.heap.new_map();
    ctx.heap.set(inner, "a", "b");
    Ok(Value::object(Thing { inner: inner.into() }))
}

fn vs(_: &mut Ctx, args: &[Value]) -> Result {
    let rest: Vec<_> = args[1..].iter().map(text).collect();
    Ok(rest.join(text(&args[0])).into())
}

fn include(_: &mut Ctx, args: &[Value]) -> Result<Call> {
    let name = args[0].as_str().unwrap().clone();
    let then = |_: &mut Ctx, _: &[Value], out: Result<Str, Error>| Ok(out?.into());
    Ok(Call::Template { name, data: args[1].clone(), then })
}

fn tpl(_: &mut Ctx, args: &[Value]) -> Result<Call> {
    let text = args[0].as_str().unwrap().clone();
    let then = |_: &mut Ctx, args: &[Value], out: Result<Str, Error>| match out {
        Ok(out) => Ok(out.into()),
        Err(error) => {
            let what = match error.kind() {
                catamaran_gotemplate::ErrorKind::Parse => "cannot parse template",
                _ => "error during tpl function execution for",
            };
            let quoted = fmt::quote(args[0].as_str().unwrap());
            Err(FuncError::wrap(format!("{what} {quoted}: "), error))
        }
    };
    Ok(Call::Text { name: "gotpl", text, data: args[1].clone(), then })
}

pub fn functions() -> Functions {
    let mut functions = Functions::new();
    functions.extend([
        Func::new("dict", &[], dict).variadic(Type::Any),
        Func::new("list", &[], |ctx, args| Ok(list_of(Type::LIST)(ctx, args))).variadic(Type::Any),
        Func::new("strs", &[], |ctx, args| Ok(list_of(Type::STRINGS)(ctx, args)))
            .variadic(Type::String),
        Func::new("ints", &[], |ctx, args| Ok(list_of(Type::INTS)(ctx, args))).variadic(Type::Int),
        Func::new("bytes", &[Type::String], |_, args| {
            Ok(Value::Bytes(args[0].as_str().unwrap().as_bytes().into()))
        }),
        Func::new("s", &[Type::String], same),
        Func::new("i", &[Type::Int], same),
        Func::new("i64", &[Type::Int64], same),
        Func::new("u64", &[Type::Uint64], same),
        Func::new("f", &[Type::Float64], same),
        Func::new("b", &[Type::Bool], same),
        Func::new("m", &[Type::MAP], |ctx, args| {
            Ok(Value::Int(ctx.heap.map(args[0].as_map().unwrap()).entries.len() as i64))
        }),
        Func::new("l", &[Type::LIST], |ctx, args| {
            Ok(Value::Int(ctx.heap.items(args[0].as_list().unwrap()).len() as i64))
        }),
        Func::new("typ", &[Type::Any], |ctx, args| Ok(ctx.heap.type_name(&args[0]).into())),
        Func::new("vs", &[Type::String], vs).variadic(Type::String),
        Func::new("fail", &[Type::String], |_, args| Err(text(&args[0]).into())),
        Func::new("nilval", &[], |_, _| Ok(Value::Nil)),
        Func::new("dur", &[Type::Int64], |_, args| {
            Ok(Value::object(Duration(args[0].as_int().unwrap())))
        }),
        Func::new("wantdur", WANT_DURATION, |ctx, args| Ok(ctx.print(&args[0])?.into())),
        Func::new("obj", &[], obj),
        Func::new("nilobj", &[], |_, _| Ok(Value::object(TypedNil(&THING)))),
        Func::new("named", &[], named),
        Func::engine("include", &[Type::String, Type::Any], include),
        Func::engine("tpl", &[Type::String, Type::Any], tpl),
    ]);
    functions
}

const LIB: &str = r#"{{define "lib.hello"}}hello {{.}}{{end}}{{define "lib.deep"}}{{.a.b.c}}{{end}}{{define "lib.name"}}{{.name}}{{end}}"#;

/// Renders one text as the template `case`.
pub fn render(text: &str, missing_key: MissingKey, data: &str) -> Result<Str, Error> {
    render_with(text, missing_key, data, Budget::default())
}

pub fn render_with(
    text: &str,
    missing_key: MissingKey,
    data: &str,
    budget: Budget,
) -> Result<Str, Error> {
    let mut set = TemplateSet::new(Arc::new(functions()), missing_key);
    set.parse("lib", LIB).unwrap();
    set.parse("case", text)?;
    let mut ctx = Ctx::new(budget, SystemTime::UNIX_EPOCH, 1);
    let mut json = serde_json::Deserializer::from_str(data);
    let data = Seed::new(&mut ctx.heap).deserialize(&mut json).unwrap();
    set.execute(&mut ctx, "case", &data)
}
