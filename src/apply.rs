//! The one door through which business state is written.
