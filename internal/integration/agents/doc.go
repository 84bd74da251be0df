// Package agents contains the tests of agents that work for others: delegation between two instances in one process, which meet
// over real HTTP, and the streams of a crew of coding agents. It exports nothing.
package agents
