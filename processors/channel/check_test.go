package channel_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors/channel"
	"github.com/turntable-streams/turntable/processors/channel/adapter"
	"github.com/turntable-streams/turntable/processors/channel/discord"
	"github.com/turntable-streams/turntable/processors/channel/internal/platform/platformtest"
	"github.com/turntable-streams/turntable/processors/channel/matrix"
	"github.com/turntable-streams/turntable/processors/channel/mattermost"
	"github.com/turntable-streams/turntable/processors/channel/slack"
	"github.com/turntable-streams/turntable/processors/channel/teams"
	"github.com/turntable-streams/turntable/processors/channel/telegram"
)

// wrong is the token or secret of the accounts.
const wrong = "wrong-s3cret-token-0123456789"

// refusing is a platform that knows no token.
type refusing struct {
	path, answer string
	status       int
	open         func(url string) (adapter.Adapter, error)
	reason       string
}

var platforms = map[string]refusing{
	"slack": {
		"/auth.test", `{"ok":false,"error":"invalid_auth"}`, 200,
		func(url string) (adapter.Adapter, error) {
			return slack.New(slack.Config{Account: "main", Token: wrong, SigningSecrets: []string{wrong}, URL: url})
		}, "invalid_auth",
	},
	"telegram": {
		"/bot4242:" + wrong + "/getMe", `{"ok":false,"error_code":401,"description":"Unauthorized"}`, 401,
		func(url string) (adapter.Adapter, error) {
			return telegram.New(telegram.Config{Account: "main", Token: "4242:" + wrong, Username: "bot", BaseURL: url})
		}, "status 401",
	},
	"discord": {
		"/api/v9/users/@me", `{"message":"401: Unauthorized","code":0}`, 401,
		func(url string) (adapter.Adapter, error) {
			return discord.New(discord.Config{Account: "main", Token: wrong, BaseURL: url})
		}, "status 401",
	},
	"mattermost": {
		"/api/v4/users/me", `{"id":"api.context.session_expired.app_error","message":"Invalid or expired session","status_code":401}`, 401,
		func(url string) (adapter.Adapter, error) {
			return mattermost.New(mattermost.Config{Account: "main", Token: wrong, Username: "bot", BaseURL: url})
		}, "status 401, api.context.session_expired.app_error",
	},
	"matrix": {
		"/_matrix/client/v3/account/whoami", `{"errcode":"M_UNKNOWN_TOKEN","error":"Invalid access token passed."}`, 401,
		func(url string) (adapter.Adapter, error) {
			return matrix.New(matrix.Config{Account: "main", UserID: "@bot:example.org", AccessToken: wrong, BaseURL: url})
		}, "status 401, M_UNKNOWN_TOKEN",
	},
	"teams": {
		"/token", `{"error":"invalid_client","error_description":"` + wrong + `"}`, 401,
		func(url string) (adapter.Adapter, error) {
			return teams.New(teams.Config{Account: "main", AppID: "00000000-0000-0000-0000-000000000000", Secret: wrong, TokenURL: url + "/token"})
		}, "no token: status 401",
	},
}

func TestWrongTokenIsSaidOnce(t *testing.T) {
	for name, p := range platforms {
		t.Run(name, func(t *testing.T) {
			asked := make(chan struct{}, 100)
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != p.path {
					t.Errorf("asked for %s", r.URL.Path)
				}
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(p.status)
				_, _ = fmt.Fprint(w, p.answer)
				asked <- struct{}{}
			}))
			defer server.Close()
			a, err := p.open(server.URL)
			require.NoError(t, err)
			log, logs := platformtest.Logs()
			checks := channel.NewChecks([]channel.AccountAdapter{{Name: "main", Adapter: a}}, channel.CheckConfig{Logger: log, Clock: platformtest.Quick()})
			stop := platformtest.Run(t, checks.Run)
			for range 3 {
				<-asked
			}
			stop()
			if c, ok := a.(interface{ Close() }); ok {
				c.Close()
			}
			require.Equal(t, 1, logs.Len())
			entry := logs.All()[0]
			require.Equal(t, "warn", entry.Level.String())
			require.Equal(t, "the platform refuses the account: no message is received, and answers are retried until their deliveries end", entry.Message)
			require.Equal(t, map[string]any{
				"channel": name, "account": "main", "reason": p.reason, "status": int64(p.status),
				"remedy": "check the token or password of the account and restart",
			}, entry.ContextMap())
			require.Contains(t, checks.Failed()[name+"/main"], p.reason)
			require.NotContains(t, fmt.Sprint(entry.ContextMap(), checks.Failed()), wrong)
		})
	}
}

// The account may be accepted: its token is not blamed.
func TestPlatformThatCannotAnswerIsNoWrongToken(t *testing.T) {
	for name, p := range platforms {
		for _, status := range []int{408, 429, 503} {
			t.Run(fmt.Sprint(name, status), func(t *testing.T) { cannotAnswer(t, p, status, `{}`, name) })
		}
	}
	for _, code := range []string{"ratelimited", "service_unavailable"} {
		t.Run(code, func(t *testing.T) {
			cannotAnswer(t, platforms["slack"], 200, `{"ok":false,"error":"`+code+`"}`, "slack")
		})
	}
}

func cannotAnswer(t *testing.T, p refusing, status int, answer, name string) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = fmt.Fprint(w, answer)
	}))
	defer server.Close()
	a, err := p.open(server.URL)
	require.NoError(t, err)
	if c, ok := a.(interface{ Close() }); ok {
		defer c.Close()
	}
	log, logs := platformtest.Logs()
	checks := channel.NewChecks([]channel.AccountAdapter{{Name: "main", Adapter: a}}, channel.CheckConfig{Logger: log})
	stop := platformtest.Run(t, checks.Run)
	require.Eventually(t, func() bool { return logs.Len() == 1 }, time.Minute, time.Millisecond)
	stop()
	require.True(t, strings.HasPrefix(logs.All()[0].Message, "the platform cannot be asked about the account: "), logs.All()[0].Message)
	require.NotContains(t, fmt.Sprint(logs.All()[0].ContextMap(), checks.Failed()), "token or password")
}

func TestSilentPlatformIsSaidWithinFiveSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var works atomic.Bool
		log, logs := platformtest.Logs()
		checks := channel.NewChecks([]channel.AccountAdapter{{Name: "a", Adapter: asker{answer: func(ctx context.Context) error {
			if !works.Load() {
				<-ctx.Done()
			}
			return ctx.Err()
		}}}}, channel.CheckConfig{Logger: log})
		ran := make(chan error)
		go func() { ran <- checks.Run(t.Context()) }()
		time.Sleep(5 * time.Second)
		require.Equal(t, 1, logs.Len())
		require.Equal(t, "timeout", logs.All()[0].ContextMap()["reason"])
		require.True(t, strings.HasPrefix(checks.Failed()["asker/a"], "the platform cannot be asked about the account: timeout; "))
		time.Sleep(time.Minute)
		require.Equal(t, 1, logs.Len())
		works.Store(true)
		require.NoError(t, <-ran)
		require.Equal(t, "the platform accepts the account now", logs.All()[1].Message)
		require.Empty(t, checks.Failed())
	})
}
