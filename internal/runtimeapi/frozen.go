package runtimeapi

// Frozen is implemented by the codec of a group table if neither its decoded values nor the code that handles them change
// the bytes that they were decoded from. The store then does not copy a row for each callback that reads it.
type Frozen interface{ FrozenRows() }
