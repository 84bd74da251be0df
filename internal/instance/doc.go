// Package instance runs one instance of a group: Goka's processor on this project's cut, producer, stores and topic
// manager. A failure stops the instance as a whole, and it restarts as a whole.
package instance
