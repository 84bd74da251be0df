// Package instance runs one instance of a group: Goka's processor with this project's cut, producer, stores and topic
// manager under it, as one unit that stops and restarts as a whole.
package instance
