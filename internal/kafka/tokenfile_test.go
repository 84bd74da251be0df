package kafka_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/kafka"
)

func TestTokenFileIsReadAgainForEveryConnection(t *testing.T) {
	now := time.Date(2026, 5, 4, 0, 0, 0, 0, time.UTC)
	path := filepath.Join(t.TempDir(), "token")
	put := func(text string) { require.NoError(t, os.WriteFile(path, []byte(text), 0o600)) }
	first := unsigned(fmt.Sprintf(`{"exp":%d}`, now.Add(time.Minute).Unix()))
	put(first + "\n")
	f, err := kafka.NewTokenFile(path, func() time.Time { return now })
	require.NoError(t, err)
	token, err := f.Token(t.Context())
	require.NoError(t, err)
	require.Equal(t, first, token)

	now = now.Add(time.Hour)
	_, err = f.Token(t.Context())
	require.ErrorContains(t, err, "expired at 2026-05-04T00:01:00Z")
	require.NotContains(t, err.Error(), first)

	put("opaque")
	token, err = f.Token(t.Context())
	require.NoError(t, err)
	require.Equal(t, "opaque", token)
}

func TestUnusableTokenFilesAreRefusedWithoutQuotingThem(t *testing.T) {
	directory := t.TempDir()
	for want, content := range map[string]string{
		"empty": " \n", "blanks or control characters": "hunter2 hunter2", "longer than 65536 bytes": strings.Repeat("h", 70_000),
	} {
		path := filepath.Join(directory, "hunter2")
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		_, err := kafka.NewTokenFile(path, nil)
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), "hunter2")
	}
	for _, path := range []string{filepath.Join(directory, "hunter2", "absent"), directory} {
		_, err := kafka.NewTokenFile(path, nil)
		require.ErrorContains(t, err, "cannot be read")
		require.NotContains(t, err.Error(), "hunter2")
	}
}
