package entrance

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestBuffersOfOneSizeAreReused(t *testing.T) {
	for size, class := range map[int]int{
		0: -1, 1: -1, firstBuffer - 1: -1, firstBuffer: 0, firstBuffer + 1: -1, 2 * firstBuffer: 1, 3 * firstBuffer: -1,
		firstBuffer << 11: 11, firstBuffer << 12: -1,
	} {
		require.Equal(t, class, classOf(size), size)
		reuse(make([]byte, size/2, size))
		b := bufferOf(size)
		require.Empty(t, b)
		require.Equal(t, size, cap(b))
	}
}
