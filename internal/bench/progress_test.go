package main

import (
	"bytes"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestProgressIsPrintedOnTerminalsOnly(t *testing.T) {
	var out bytes.Buffer
	p := &progress{to: &out}
	p.begin("floor, load", phase{turns: 10})
	p.turn(7) // too soon for another
	p.clear()
	require.Equal(t, "\r\x1b[Kfloor, load: 0 turns of 10\r\x1b[K", out.String())
	out.Reset()
	p.begin("floor, load", phase{duration: 10 * time.Second})
	p.start, p.last = p.start.Add(-4*time.Second), time.Time{}
	p.turn(8)
	require.Contains(t, out.String(), "8 turns, 4s of 10s, 2/s")

	f, err := os.Create(t.TempDir() + "/notes")
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close()) }()
	require.Nil(t, newProgress(f).to)
	require.Nil(t, newProgress(&out).to)
	newProgress(&out).turn(1)
}
