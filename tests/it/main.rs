//! One integration binary: features are tested at the boundary.

mod paging;
