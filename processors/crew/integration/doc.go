// Package integration tests the parts of crews together: host, groups and door.
package integration
