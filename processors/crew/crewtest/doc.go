// Package crewtest has coding agents that speak ACP and do what a script says. Tests and examples run them where a user runs a
// real agent.
//
// The agent of this package is the calling binary itself, on the Go SDK of ACP: a TestMain or a main function calls Main first,
// and Command returns the command line with which the binary is an agent. InstallTypeScript installs the same agent on the
// TypeScript SDK, as another implementation of the protocol.
package crewtest
