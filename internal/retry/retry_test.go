package retry

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

var (
	errAway  = errors.New("away")
	errFinal = errors.New("final")
)

func TestUntilRetriesUntilSuccess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tries, told := 0, 0
		require.NoError(t, Until(t.Context(), func() error {
			if tries++; tries < 3 {
				return errAway
			}
			return nil
		}, func(err error) {
			told++
			require.ErrorIs(t, err, errAway)
		}, errFinal))
		require.Equal(t, 3, tries)
		require.Equal(t, 2, told)
	})
}

func TestUntilDoesNotRetryAFinalError(t *testing.T) {
	tries := 0
	err := Until(t.Context(), func() error {
		tries++
		return fmt.Errorf("record: %w", errFinal)
	}, func(error) { t.Error("failed was called, but a final error is not retried") }, errAway, errFinal)
	require.ErrorIs(t, err, errFinal)
	require.Equal(t, 1, tries)
}

func TestUntilEndsWithItsContext(t *testing.T) {
	ctx, end := context.WithCancel(t.Context())
	require.ErrorIs(t, Until(ctx, func() error {
		end()
		return errAway
	}, nil), context.Canceled)
}
