"""Running what nobody trusts: compilers, device workers and the cages round them."""
