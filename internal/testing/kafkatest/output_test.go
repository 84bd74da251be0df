package kafkatest

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestQuotedOutputOmitsStackFrames(t *testing.T) {
	out := "one\ntwo\nthree: bad value\n\tat a.B.c(B.java:1)\n\tat a.B.d(B.java:2)\nfour\n\n"
	require.Equal(t, "three: bad value\nfour", lastLines([]byte(out), 2))
	require.Equal(t, "one\ntwo\nthree: bad value\nfour", lastLines([]byte(out), 9))
	require.Empty(t, lastLines(nil, 3))
}
