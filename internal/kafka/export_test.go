package kafka

import (
	"maps"
	"slices"
)

// Supported returns the names of the properties that Apply knows.
func Supported() []string { return slices.Sorted(maps.Keys(supported())) }
