//! Boxes of speech enhancement, as far as [`super::transform`] lacks them: functions of a frame, and [`Frames`] that makes boxes of them.

pub mod frames;
pub mod gain;
pub mod signal;
pub mod spectrum;

use std::marker::PhantomData;

use crate::{In, Out, Outcome, Primitive, Token};

/// Frames are of three classes, and each class has a branch of its own.
pub const CLASSES: usize = 3;
pub const PAUSE: usize = 0;
pub const VOICED: usize = 1;
pub const TRANSIENT: usize = 2;

/// A box that calls a function for each frame; `P` are its ports.
pub struct Frames<F, P> {
    f: F,
    /// Tokens of a frame at each input, at each output.
    takes: usize,
    gives: usize,
    ports: PhantomData<P>,
}

macro_rules! frames {
    ($($new:ident: ($($x:ident $a:ident),+) -> ($($y:ident $b:ident),+);)+) => { $(
        impl<F, $($a: Token,)+ $($b: Token),+> Frames<F, ($(In<$a>,)+ $(Out<$b>),+)>
        where F: FnMut($(&[$a],)+ $(&mut [$b]),+) + 'static {
            pub fn $new(takes: usize, gives: usize, f: F) -> Self {
                Self { f, takes, gives, ports: PhantomData }
            }
        }

        impl<F, $($a: Token,)+ $($b: Token),+> Primitive for Frames<F, ($(In<$a>,)+ $(Out<$b>),+)>
        where F: FnMut($(&[$a],)+ $(&mut [$b]),+) + 'static {
            type Ports = ($(In<$a>,)+ $(Out<$b>),+);
            fn apply(&mut self, ($($x,)+ $($y),+): ($(&[$a],)+ $(&mut [$b]),+)) -> Outcome {
                $(let mut $x = $x.chunks_exact(self.takes);)+
                $(let mut $y = $y.chunks_exact_mut(self.gives);)+
                while let ($(Some($x),)+ $(Some($y)),+) = ($($x.next(),)+ $($y.next()),+) {
                    (self.f)($($x,)+ $($y),+);
                }
                Outcome::Done
            }
        }
    )+ };
}
frames! {
    one_to_one: (x A) -> (y Y);
    one_to_two: (x A) -> (y Y, z Z);
    two_to_one: (w A, x B) -> (y Y);
    two_to_two: (w A, x B) -> (y Y, z Z);
}
