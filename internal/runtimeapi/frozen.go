package runtimeapi

// Frozen is implemented by the codec of a group table whose decoded values leave the bytes that they were decoded from
// as they are, and by all who handle them: the store then need not copy a row for each callback that reads it.
type Frozen interface{ FrozenRows() }
