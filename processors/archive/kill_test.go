package archive

import (
	"context"
)

// child is what a process of a kill test does.
type child struct {
	Brokers []string
	Agent   string
	What    string
	Dir     string
	To      int32
}

func runChild(ctx context.Context, c child) error { return nil }
