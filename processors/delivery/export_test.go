package delivery

// CircuitPhase is for the tests of the processors.
var CircuitPhase = circuitPhase
