// Package examples runs the programs of the folder examples as their users do: their output, signals and exit codes.
package examples
