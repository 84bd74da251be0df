package main

import (
	"context"
	"io"
)

func run(ctx context.Context, s settings, in io.Reader, out, errs io.Writer) error { return nil }
