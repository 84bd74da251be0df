package sink_test

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors/delivery/sink"
)

func TestHostMappingIsParsed(t *testing.T) {
	for mapping, want := range map[string]map[string]string{
		"":                                       {},
		" ,,":                                    {},
		"test-callback:https://callback.invalid": {"test-callback": "https://callback.invalid/api/tools/response"},
		" a : http://h:8000/ , b:https://h/base/path/,, A:http://H": {
			"a": "http://h:8000/api/tools/response", "b": "https://h/base/path/api/tools/response",
			"A": "http://H/api/tools/response",
		},
		"a:http://one,a:http://two": {"a": "http://two/api/tools/response"},
		"a:http://h//":              {"a": "http://h//api/tools/response"},
		"a:http://[::1]:80":         {"a": "http://[::1]:80/api/tools/response"},
	} {
		s, err := sink.ParseServices(mapping)
		require.NoError(t, err, mapping)
		require.Len(t, s.Names(), len(want))
		for name, callback := range want {
			got, ok := s.CallbackURL(name)
			require.True(t, ok)
			require.Equal(t, callback, got)
		}
		require.False(t, s.Known("nobody"))
		require.False(t, s.Known(""))
	}
	require.False(t, sink.Services{}.Known("a"), "the zero value is empty")
}

func TestErrorOfInvalidMappingOmitsTheURL(t *testing.T) {
	for _, mapping := range []string{
		"plain", ":http://h", "a:", "a: ", "http://h", "a:ftp://h", "a:h", "a:h:80", "a:http://", "a:http://h:99999", "a:http:///path", "a://h",
		"a:http://user:secret@h", "a:http://h?secret=1", "a:http://h#secret", "a:http://h/%zz", "a:http://h?", "a:http://h#",
		"a:http://h\x00", "a:http://:80", "a:mailto:x",
	} {
		_, err := sink.ParseServices("ok:http://h," + mapping)
		require.ErrorIs(t, err, sink.ErrServices, mapping)
		require.NotContains(t, err.Error(), "secret")
	}
	_, err := sink.ParseServices("one,two")
	require.ErrorContains(t, err, "entry 1")
	require.ErrorContains(t, err, "entry 2")
}

func FuzzServices(f *testing.F) {
	for _, s := range []string{
		"test-callback:https://callback.invalid", "a:http://h:80/x,b:https://[::1]/", " ,a :http://h/ ", "a:http://h/..//b",
		"a:http://h/%2e%2e", "a:HTTP://h", "a:http://h\\@evil", "a:http://h/a:b", "http://h",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, mapping string) {
		s, err := sink.ParseServices(mapping)
		if err != nil {
			require.ErrorIs(t, err, sink.ErrServices)
			require.Empty(t, s.Names())
			return
		}
		for _, name := range s.Names() {
			require.Equal(t, strings.TrimSpace(name), name)
			callback, ok := s.CallbackURL(name)
			require.True(t, ok)
			u, err := url.Parse(callback)
			require.NoError(t, err)
			require.Contains(t, []string{"http", "https"}, u.Scheme)
			require.NotEmpty(t, u.Hostname())
			require.Nil(t, u.User)
			require.Empty(t, u.RawQuery)
			require.Empty(t, u.Fragment)
			require.True(t, strings.HasSuffix(u.Path, sink.CallbackPath))
		}
	})
}

func TestRetryAfterIsSecondsOrADate(t *testing.T) {
	now := time.Date(2026, 6, 20, 8, 0, 0, 0, time.UTC)
	for value, want := range map[string]time.Duration{
		"": 0, " ": 0, "0": 0, "7": 7 * time.Second, " 12 ": 12 * time.Second, "-1": 0, "1.5": 0, "soon": 0, "1e3": 0,
		"99999999999999999999999": 7 * 24 * time.Hour, "Sat, 20 Jun 2026 08:00:30 GMT": 30 * time.Second,
		"Saturday, 20-Jun-26 08:01:00 GMT": time.Minute, "Sat, 20 Jun 2026 07:00:00 GMT": 0,
		"Sat, 20 Jun 2099 07:00:00 GMT": 7 * 24 * time.Hour,
	} {
		require.Equal(t, want, sink.ParseRetryAfter(value, now), value)
	}
}

func FuzzRetryAfter(f *testing.F) {
	for _, s := range []string{
		"7", "-1", "Sat, 20 Jun 2026 08:00:30 GMT", "Sat Jun 20 08:00:30 2026", "9999999999999999999",
	} {
		f.Add(s, int64(1_790_000_000))
	}
	f.Fuzz(func(t *testing.T, value string, now int64) {
		d := sink.ParseRetryAfter(value, time.Unix(now, 0))
		require.GreaterOrEqual(t, d, time.Duration(0))
		require.LessOrEqual(t, d, 7*24*time.Hour)
	})
}
