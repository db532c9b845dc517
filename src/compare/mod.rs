//! Compare: which objects disagree, in bounded memory. Pure.
