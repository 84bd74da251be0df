package main

import "time"

const (
	// sessionTimeout is how long a member of a group may be silent.
	sessionTimeout = 10 * time.Second
	// maxRecord is what a broker takes by default.
	maxRecord = 1 << 20
)
