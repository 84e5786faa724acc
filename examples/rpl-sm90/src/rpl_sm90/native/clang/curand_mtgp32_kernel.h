// Clang's wrapper of CUDA's headers asks for this one of cuRAND, which a toolkit without cuRAND lacks. It is found
// behind the toolkit's own; a source that uses cuRAND does not compile then, as it would not with nvcc.
