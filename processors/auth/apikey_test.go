package auth_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/turntable-streams/turntable/internal/clock"
	"github.com/turntable-streams/turntable/processors/auth"
)

// keyFixture is an open file of keys.
type keyFixture struct {
	t     *testing.T
	path  string
	clock *clock.Fake
	logs  *observer.ObservedLogs
	keys  *auth.APIKeys
}

func openKeys(t *testing.T, lines ...string) *keyFixture {
	t.Helper()
	core, logs := observer.New(zap.InfoLevel)
	f := &keyFixture{t: t, path: filepath.Join(t.TempDir(), "keys"), clock: clock.NewFake(noon), logs: logs}
	f.write(lines...)
	keys, err := auth.OpenAPIKeys(f.path, auth.APIKeyConfig{Clock: f.clock, Logger: zap.New(core)})
	require.NoError(t, err)
	f.keys = keys
	return f
}

// write replaces the file and moves the clock to when it may be read again.
func (f *keyFixture) write(lines ...string) {
	f.t.Helper()
	require.NoError(f.t, os.WriteFile(f.path, []byte(strings.Join(lines, "\n")), 0o600))
	f.clock.Advance(time.Second)
}

func (f *keyFixture) try(key string) (auth.Caller, error) {
	r := httptest.NewRequest(http.MethodPost, "/api/chat", nil)
	if key != "" {
		r.Header.Set("Authorization", "Bearer "+key)
	}
	return f.keys.Authenticate(r)
}

func newKey(t *testing.T, h auth.APIKeyHolder) (key, line string) {
	t.Helper()
	if h.Sessions == nil {
		h.Sessions = []string{"*"}
	}
	if h.Rights == 0 {
		h.Rights = auth.AllRights
	}
	key, line, err := auth.NewAPIKey(h)
	require.NoError(t, err)
	require.NotContains(t, line, key[strings.LastIndex(key, "_")+1:], "the file contains no secret")
	return key, line
}

func TestKeyAuthenticatesItsHolder(t *testing.T) {
	key, line := newKey(t, auth.APIKeyHolder{
		User: "mira", Sessions: []string{"{user}:*", "lobby"}, Rights: auth.Read | auth.Write, Expires: noon.Add(time.Hour),
	})
	c, err := openKeys(t, "# keys", "", line).try(key)
	require.NoError(t, err)
	require.Equal(t, "mira", c.UserID)
	require.Equal(t, "key:"+strings.Split(key, "_")[1], c.Name())
	require.True(t, c.Allowed("mira:1") && c.Allowed("lobby"))
	require.False(t, c.Allowed("otto:1"))
	require.Equal(t, auth.Read|auth.Write, c.Rights)
	require.Equal(t, noon.Add(time.Hour).Truncate(time.Second).Unix(), c.Expires.Unix())
	require.False(t, c.Revoked())
}

func TestOtherKeysAreRejectedWithoutAReason(t *testing.T) {
	key, line := newKey(t, auth.APIKeyHolder{})
	expired, old := newKey(t, auth.APIKeyHolder{Expires: noon.Add(-time.Second)})
	f := openKeys(t, line, old)
	id := strings.Split(key, "_")[1]
	hash := line[strings.Index(line, "sha256:")+7:][:64]
	texts := map[string]bool{}
	for name, bad := range map[string]string{
		"another secret": "tt_" + id + "_" + strings.Repeat("0", 64),
		"the hash":       "tt_" + id + "_" + hash,
		"unknown":        "tt_0000000000000000_" + strings.Repeat("0", 64),
		"shorter":        key[:len(key)-1],
		"longer":         key + "0",
		"prefix only":    "tt_",
		"no secret":      "tt_" + id,
		"expired":        expired,
		"upper case":     strings.ToUpper(key[3:]),
	} {
		if name == "upper case" {
			bad = "tt_" + bad
		}
		_, err := f.try(bad)
		require.ErrorIs(t, err, auth.ErrRejected, name)
		require.NotErrorIs(t, err, auth.ErrNoCredential, name)
		texts[err.Error()] = true
	}
	require.Len(t, texts, 1)
	for _, none := range []string{"", "eyJ.e30.x", "TT_" + key[3:]} {
		_, err := f.try(none)
		require.ErrorIs(t, err, auth.ErrNoCredential, none)
	}
}

func TestChangedKeyFileIsReadAgain(t *testing.T) {
	a, lineA := newKey(t, auth.APIKeyHolder{User: "a"})
	b, lineB := newKey(t, auth.APIKeyHolder{User: "b"})
	f := openKeys(t, lineA)
	callerA, err := f.try(a)
	require.NoError(t, err)
	_, err = f.try(b)
	require.Error(t, err)

	f.write(lineB, lineA)
	callerB, err := f.try(b)
	require.NoError(t, err)
	require.False(t, callerA.Revoked(), "its line moved, and did not change")

	f.write(strings.Replace(lineB, `"all"`, `"read"`, 1), lineA)
	require.True(t, callerB.Revoked(), "its line has changed")
	f.write(lineB)
	require.True(t, callerA.Revoked(), "its line was removed")
	_, err = f.try(a)
	require.ErrorIs(t, err, auth.ErrRejected)
}

func TestKeyFileIsReadAtMostOnceASecond(t *testing.T) {
	key, line := newKey(t, auth.APIKeyHolder{})
	f := openKeys(t, line)
	_, err := f.try(key)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(f.path, nil, 0o600))
	f.clock.Advance(time.Second - 1)
	_, err = f.try(key)
	require.NoError(t, err)
	f.clock.Advance(1)
	_, err = f.try(key)
	require.Error(t, err)
}

func TestBrokenKeyFileKeepsTheFormerKeys(t *testing.T) {
	key, line := newKey(t, auth.APIKeyHolder{})
	secret := key[strings.LastIndex(key, "_")+1:]
	f := openKeys(t, line)
	for _, broken := range []string{key, line + "\n" + line, strings.Replace(line, `"id"`, `"ID"`, 1), secret} {
		f.write("# changed", broken)
		c, err := f.try(key)
		require.NoError(t, err)
		require.False(t, c.Revoked())
	}
	require.NoError(t, os.Remove(f.path))
	for range 3 {
		f.clock.Advance(time.Second)
		_, err := f.try(key)
		require.NoError(t, err)
	}
	errs := f.logs.FilterLevelExact(zap.ErrorLevel).All()
	require.Len(t, errs, 4, "a reason that repeats is logged once")
	for _, e := range errs {
		text := e.ContextMap()["error"].(string)
		require.NotContains(t, text, secret)
	}
	require.Contains(t, errs[0].ContextMap()["error"], "line 2")

	f.write("# it is there again, without keys")
	_, err := f.try(key)
	require.ErrorIs(t, err, auth.ErrRejected)
}

func TestInvalidLinesOfKeysAreRejectedByNumber(t *testing.T) {
	_, line := newKey(t, auth.APIKeyHolder{User: "mira"})
	for name, bad := range map[string]string{
		"not JSON":          "x",
		"unknown member":    strings.Replace(line, `{`, `{"secret":"x",`, 1),
		"duplicate member":  strings.Replace(line, `{`, `{"user":"x",`, 1),
		"no sessions":       strings.Replace(line, `["*"]`, `[]`, 1),
		"unsafe sessions":   strings.Replace(line, `["*"]`, `["*{user}"]`, 1),
		"no rights":         strings.Replace(line, `["all"]`, `[]`, 1),
		"unknown right":     strings.Replace(line, `["all"]`, `["root"]`, 1),
		"short hash":        strings.Replace(line, `sha256:`, `sha256:0`, 1),
		"no hash":           strings.Replace(line, `sha256:`, `md5:`, 1),
		"user placeholder":  strings.Replace(strings.Replace(line, `"user":"mira",`, "", 1), `["*"]`, `["{user}:*"]`, 1),
		"user with control": strings.Replace(line, `mira`, `mi\u0000ra`, 1),
		"date":              strings.Replace(line, `}`, `,"expires":"tomorrow"}`, 1),
		"zero date":         strings.Replace(line, `}`, `,"expires":"0001-01-01T00:00:00Z"}`, 1),
		"array":             "[]",
		"repeated id":       strings.Replace(line, "mira", "otto", 1),
	} {
		path := filepath.Join(t.TempDir(), "keys")
		require.NotEqual(t, line, bad, name)
		require.NoError(t, os.WriteFile(path, []byte(line+"\n"+bad+"\n"), 0o600))
		_, err := auth.OpenAPIKeys(path, auth.APIKeyConfig{})
		require.ErrorIs(t, err, auth.ErrAPIKeys, name)
		require.ErrorContains(t, err, "line 2", name)
	}
	_, err := auth.OpenAPIKeys(filepath.Join(t.TempDir(), "absent"), auth.APIKeyConfig{})
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestHolderOfAKeyIsChecked(t *testing.T) {
	for _, h := range []auth.APIKeyHolder{
		{Rights: auth.Read}, {Sessions: []string{"*"}}, {Sessions: []string{"{user}:*"}, Rights: auth.Read},
	} {
		_, _, err := auth.NewAPIKey(h)
		require.ErrorIs(t, err, auth.ErrAPIKeys)
	}
}

// The commands of the package documentation make a key that works.
func TestDocumentedCommandsMakeAKey(t *testing.T) {
	if _, err := exec.LookPath("openssl"); err != nil {
		t.Skip("openssl is not installed")
	}
	source, err := os.ReadFile("apikey.go")
	require.NoError(t, err)
	_, commands, _ := strings.Cut(string(source), "//\tid=$(")
	commands, _, ok := strings.Cut("id=$("+commands, "\n//\n")
	require.True(t, ok)
	sh := exec.CommandContext(t.Context(), "sh", "-ec", strings.ReplaceAll(commands, "\n//\t", "\n"))
	sh.Dir = t.TempDir()
	key, err := sh.Output()
	require.NoError(t, err)
	line, err := os.ReadFile(filepath.Join(sh.Dir, "keys"))
	require.NoError(t, err)
	c, err := openKeys(t, string(line)).try(strings.TrimSpace(string(key)))
	require.NoError(t, err)
	require.Equal(t, "mira", c.UserID)
}

// Requests that come while the file changes get the former keys or the new ones, and never a part of them.
func TestKeysAreReadConcurrently(t *testing.T) {
	stays, lineStays := newKey(t, auth.APIKeyHolder{User: "stays"})
	comes, lineComes := newKey(t, auth.APIKeyHolder{User: "comes"})
	f := openKeys(t, lineStays)
	var running sync.WaitGroup
	seen := make(chan struct{}, 4)
	for range 4 {
		running.Go(func() {
			for {
				if _, err := f.try(stays); err != nil {
					t.Errorf("a key that is in both files: %v", err)
					return
				}
				if c, err := f.try(comes); err == nil && !c.Revoked() {
					seen <- struct{}{}
					return
				}
				f.clock.Advance(time.Second)
			}
		})
	}
	next := f.path + ".next"
	require.NoError(t, os.WriteFile(next, []byte(lineComes+"\n"+lineStays+"\n"), 0o600))
	require.NoError(t, os.Rename(next, f.path))
	running.Wait()
	require.Len(t, seen, 4)
}
