// Package program builds the programs of the examples and runs them as their users do: as processes with environment variables, which
// tests ask over HTTP, interrupt and kill.
package program
