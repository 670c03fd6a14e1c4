// KS_EXPORT(i, (kernel)) for a GPU: instantiates a template's kernel and leaves its linker name where the
// assembly can be searched for it, as the initial value of ks_entry_<i>. Included after the candidate's text,
// without a guard: a macro of its own of this name ends here.
#undef KS_EXPORT
#define KS_EXPORT(i, kernel) extern "C" __attribute__((device, used)) const auto ks_entry_##i = &kernel;
