// Package integration tests package gate against a broker: restarts, deadlines across restarts, and kills of the processor
// while deciders race. It contains only tests.
package integration
