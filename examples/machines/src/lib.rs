//! The useless machine: whatever is switched up, an operator moves down again.
//!
//! [`api`] says what a Machine and a Switch are, [`stage_one`] moves the switch of a machine that has it
//! in its own spec, [`stage_two`] keeps the switches of a machine that has them as objects.

pub mod api;
pub mod stage_one;
pub mod stage_two;

use std::time::Duration;

use catamaran_operator::native::{Action, Context, Error, Only, Reconciler, Watches};

use api::{Machine, Switch};

/// How long a switch stays up.
pub const PATIENCE: Duration = Duration::from_secs(5);

/// Reconciles [`Machine`].
#[derive(Debug)]
pub struct Machines;

impl Reconciler for Machines {
    type Object = Machine;

    fn watches(&self, watches: &mut Watches) {
        watches.lists::<Switch>(Only::all());
    }

    async fn reconcile(&self, ctx: &Context<'_, Machine>) -> Result<Action, Error> {
        if let Some(position) = &ctx.spec.switch_position {
            ctx.component("Switch", stage_one::move_back(ctx, position)).await;
        }
        if let Some(wanted) = ctx.spec.switches {
            ctx.component("Switches", stage_two::keep(ctx, wanted)).await;
        }
        ctx.finish()
    }
}
