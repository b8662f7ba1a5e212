//! Boxes of the benchmark graphs, by field. Sizes are parameters; figures of a box are of single precision where nothing else is said.

pub mod adaptive;
pub mod filter;
pub mod modem;
pub mod noise;
pub mod transform;

use std::marker::PhantomData;

use machmeter_stats::random::Random;
use rustfft::num_complex::Complex32;

use crate::{In, Out, Outcome, Port, Primitive, Token};

/// A stream of normal deviates, determined by its seed alone.
pub struct Gauss(Random);

impl Gauss {
    pub fn new(seed: u64) -> Self {
        Self(Random::new(seed))
    }

    /// Standard normal.
    #[allow(clippy::should_implement_trait, reason = "the stream has no end, so that no Option is due")]
    pub fn next(&mut self) -> f32 {
        self.0.normal() as f32
    }

    /// Circular, of power 1: an exponential power and any angle.
    pub fn complex(&mut self) -> Complex32 {
        let radius = self.0.exponential().sqrt() as f32;
        Complex32::from_polar(radius, std::f32::consts::TAU * self.0.unit() as f32)
    }
}

/// A box of one input and one output.
pub trait Stage<X, Y>: Primitive<Ports = (In<X>, Out<Y>)> {}
impl<X, Y, B: Primitive<Ports = (In<X>, Out<Y>)>> Stage<X, Y> for B {}

/// A box that is a function of its ports; see [`function`].
pub struct Function<P, F>(F, PhantomData<P>);

/// The box whose apply is this function.
pub fn function<P: Port, F: FnMut(P::View<'_>) -> Outcome + 'static>(f: F) -> Function<P, F> {
    Function(f, PhantomData)
}

impl<P: Port, F: FnMut(P::View<'_>) -> Outcome + 'static> Primitive for Function<P, F> {
    type Ports = P;
    #[inline]
    fn apply(&mut self, ports: P::View<'_>) -> Outcome {
        (self.0)(ports)
    }
}

/// All tokens of an apply as one block.
const ALL: usize = usize::MAX;

/// A box that calls a function for each block; `P` are its ports.
pub struct Blocks<F, P> {
    f: F,
    /// Tokens of a block at each input, at each output.
    takes: usize,
    gives: usize,
    ports: PhantomData<P>,
}

macro_rules! blocks {
    ($($new:ident: ($($x:ident $a:ident),+) -> ($($y:ident $b:ident),+);)+) => { $(
        impl<F, $($a: Token,)+ $($b: Token),+> Blocks<F, ($(In<$a>,)+ $(Out<$b>),+)>
        where F: FnMut($(&[$a],)+ $(&mut [$b]),+) + 'static {
            pub fn $new(takes: usize, gives: usize, f: F) -> Self {
                Self { f, takes, gives, ports: PhantomData }
            }
        }

        impl<F, $($a: Token,)+ $($b: Token),+> Primitive for Blocks<F, ($(In<$a>,)+ $(Out<$b>),+)>
        where F: FnMut($(&[$a],)+ $(&mut [$b]),+) + 'static {
            type Ports = ($(In<$a>,)+ $(Out<$b>),+);
            fn apply(&mut self, ($($x,)+ $($y),+): ($(&[$a],)+ $(&mut [$b]),+)) -> Outcome {
                $(let mut $x = $x.chunks_exact(self.takes.min($x.len()).max(1));)+
                $(let mut $y = $y.chunks_exact_mut(self.gives.min($y.len()).max(1));)+
                while let ($(Some($x),)+ $(Some($y)),+) = ($($x.next(),)+ $($y.next()),+) {
                    (self.f)($($x,)+ $($y),+);
                }
                Outcome::Done
            }
        }
    )+ };
}
blocks! {
    one_to_one: (x A) -> (y Y);
    one_to_two: (x A) -> (y Y, z Z);
    two_to_one: (w A, x B) -> (y Y);
    two_to_two: (w A, x B) -> (y Y, z Z);
}
