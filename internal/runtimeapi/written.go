package runtimeapi

// Written is called with every record that a graph writes to an output in a test with processortest, unless it is nil. An error
// fails the test. The tests of this module set it, before they run, to validate the records.
var Written func(topic string, value []byte) error
