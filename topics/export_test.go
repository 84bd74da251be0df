package topics

// Fill sets fields of a record to random values.
var Fill = fill
