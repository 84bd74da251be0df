// Package recovery tells Goka where a table ends and makes the topics it needs.
package recovery
