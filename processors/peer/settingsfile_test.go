package peer_test

import (
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/turntable-streams/turntable/processors/peer"
)

const before, after = `{"peers":{"enabled":true,"instanceId":"a","inboundTokens":[{"id":"b","token":"T1"},{"id":"b","token":"T2"}]}}`,
	`{"peers":{"enabled":true,"instanceId":"a","inboundTokens":[{"id":"b","token":"T3"},{"id":"b","token":"T2"}]}}`

// write replaces a file as an operator should.
func write(t *testing.T, path, content string) {
	t.Helper()
	require.NoError(t, os.WriteFile(path+".next", []byte(content), 0o600))
	require.NoError(t, os.Rename(path+".next", path))
}

func accepts(f *peer.SettingsFile, token string) bool {
	_, ok := f.Settings().Accept(token)
	return ok
}

func TestRevokedTokenIsRefusedInTheNextRequest(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.json")
	write(t, path, before)
	f, err := peer.OpenSettings(path, peer.SettingsConfig{Environment: none})
	require.NoError(t, err)
	running := f.Settings()
	for range 20 { // the files have the same size and may have the same modification time
		require.True(t, accepts(f, "T1"))
		require.False(t, accepts(f, "T3"))
		write(t, path, after)
		require.False(t, accepts(f, "T1"))
		require.True(t, accepts(f, "T2"))
		require.True(t, accepts(f, "T3"))
		write(t, path, before)
	}
	_, ok := running.Accept("T1")
	require.True(t, ok, "what was returned does not change")
}

func TestUnusableFileKeepsTheFormerConfiguration(t *testing.T) {
	core, logs := observer.New(zap.InfoLevel)
	path := filepath.Join(t.TempDir(), "config.json")
	write(t, path, before)
	f, err := peer.OpenSettings(path, peer.SettingsConfig{Environment: none, Logger: zap.New(core)})
	require.NoError(t, err)
	write(t, path, `{"peers":{"enabled":true,"inboundTokens":[{"id":"b","token":"tok-6c1d0f"}]}}`)
	for range 3 {
		require.True(t, accepts(f, "T1"))
		require.False(t, accepts(f, "tok-6c1d0f"))
	}
	require.NoError(t, os.Remove(path))
	require.True(t, accepts(f, "T1"))
	failures := logs.FilterLevelExact(zap.ErrorLevel).All()
	require.Len(t, failures, 2, "a reason that repeats is logged once")
	require.Contains(t, failures[0].ContextMap()["error"], "peers.instanceId")
	require.NotContains(t, failures[0].ContextMap()["error"], "tok-6c1d0f")
	write(t, path, after)
	require.False(t, accepts(f, "T1"))
}

func TestConcurrentRequestsSeeTheFileAsItIs(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.json")
	write(t, path, before)
	f, err := peer.OpenSettings(path, peer.SettingsConfig{Environment: none})
	require.NoError(t, err)
	write(t, path, after)
	var requests sync.WaitGroup
	for range 8 {
		requests.Go(func() {
			for range 20 {
				if accepts(f, "T1") || !accepts(f, "T2") {
					t.Error("a request after the change saw the former file")
				}
			}
		})
	}
	requests.Wait()
}

func TestOpenRejectsFilesAndOptions(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.json")
	_, err := peer.OpenSettings(path, peer.SettingsConfig{})
	require.ErrorIs(t, err, os.ErrNotExist)
	write(t, path, `{"peers":{"enabled":true}}`)
	_, err = peer.OpenSettings(path, peer.SettingsConfig{Environment: none})
	require.ErrorIs(t, err, peer.ErrSettings)
	require.ErrorContains(t, err, path)
}
