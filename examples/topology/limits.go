package main

import "time"

const (
	// sessionTimeout is the session timeout of the consumer groups.
	sessionTimeout = 10 * time.Second
	// maxRecord is the default size limit of a broker, in bytes.
	maxRecord = 1 << 20
)
