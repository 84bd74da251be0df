package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"

	"go.yaml.in/yaml/v3"

	"github.com/turntable-streams/turntable/processors/channel"
	"github.com/turntable-streams/turntable/processors/channel/adapter"
	"github.com/turntable-streams/turntable/processors/channel/discord"
	"github.com/turntable-streams/turntable/processors/channel/email"
	"github.com/turntable-streams/turntable/processors/channel/matrix"
	"github.com/turntable-streams/turntable/processors/channel/mattermost"
	"github.com/turntable-streams/turntable/processors/channel/slack"
	"github.com/turntable-streams/turntable/processors/channel/teams"
	"github.com/turntable-streams/turntable/processors/channel/telegram"
	"github.com/turntable-streams/turntable/processors/channel/webhook"
)

// adapterFile is the file with the accounts of platforms, see README.md. It has the names of environment variables instead of
// secrets.
type adapterFile struct {
	Slack []struct {
		Name    string `yaml:"name"`
		Token   secret `yaml:"token_variable"`
		Signing secret `yaml:"signing_secret_variable"`
		URL     string `yaml:"base_url"`
	} `yaml:"slack"`
	Teams []struct {
		Name    string   `yaml:"name"`
		AppID   string   `yaml:"app_id"`
		Secret  secret   `yaml:"secret_variable"`
		Tenants []string `yaml:"tenants"`
	} `yaml:"teams"`
	Telegram []struct {
		Name     string `yaml:"name"`
		Token    secret `yaml:"token_variable"`
		Username string `yaml:"username"`
		URL      string `yaml:"base_url"`
	} `yaml:"telegram"`
	Discord []struct {
		Name  string `yaml:"name"`
		Token secret `yaml:"token_variable"`
		Key   string `yaml:"public_key"`
	} `yaml:"discord"`
	Mattermost []struct {
		Name     string `yaml:"name"`
		Token    secret `yaml:"token_variable"`
		Username string `yaml:"username"`
		URL      string `yaml:"base_url"`
	} `yaml:"mattermost"`
	Matrix []struct {
		Name  string `yaml:"name"`
		Token secret `yaml:"token_variable"`
		User  string `yaml:"user"`
		URL   string `yaml:"base_url"`
	} `yaml:"matrix"`
	Webhook []struct {
		Name   string `yaml:"name"`
		Secret secret `yaml:"secret_variable"`
		URL    string `yaml:"url"`
	} `yaml:"webhook"`
	Email []struct {
		Name     string   `yaml:"name"`
		From     string   `yaml:"from"`
		Senders  []string `yaml:"senders"`
		Server   string   `yaml:"auth_serv_id"`
		Listen   string   `yaml:"listen"`
		Domain   string   `yaml:"domain"`
		Host     string   `yaml:"host"`
		Port     int      `yaml:"port"`
		Username string   `yaml:"username"`
		Password secret   `yaml:"password_variable"`
		NoTLS    bool     `yaml:"no_tls"`
	} `yaml:"email"`
}

// secret is the value of the environment variable that the file names.
type secret string

// UnmarshalYAML reads the variable.
func (s *secret) UnmarshalYAML(n *yaml.Node) error {
	value, ok := os.LookupEnv(n.Value)
	if !ok || value == "" {
		return fmt.Errorf("line %d: the environment variable %q is empty", n.Line, n.Value)
	}
	*s = secret(value)
	return nil
}

func readAdapters(path string) (f adapterFile, err error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return f, err
	}
	d := yaml.NewDecoder(bytes.NewReader(raw))
	d.KnownFields(true)
	if err := d.Decode(&f); err != nil {
		return f, fmt.Errorf("%s: %w", path, err)
	}
	return f, nil
}

// accounts collects the adapters of the file, and what receives for them.
type accounts struct {
	*app
	to   adapter.Receiver
	all  []channel.AccountAdapter
	errs []error
}

// addAdapters makes the adapters of the file. Platforms reach those with a door at /{channel}/{name}.
func (a *app) addAdapters(to adapter.Receiver) ([]channel.AccountAdapter, error) {
	f, err := readAdapters(a.flags.adapters)
	if err != nil {
		return nil, err
	}
	c := &accounts{app: a, to: to}
	for _, e := range f.Slack {
		s, err := slack.New(slack.Config{
			Account: e.Name, Token: string(e.Token), SigningSecrets: []string{string(e.Signing)}, URL: e.URL,
		})
		if c.add(e.Name, s, err) {
			c.door(slack.Channel, e.Name, s.Handler(to))
			c.close = append(c.close, s.Close)
		}
	}
	for _, e := range f.Teams {
		t, err := teams.New(teams.Config{Account: e.Name, AppID: e.AppID, Secret: string(e.Secret), Tenants: e.Tenants})
		if c.add(e.Name, t, err) {
			c.door(teams.Channel, e.Name, t.Handler(to))
			c.close = append(c.close, t.Close)
		}
	}
	for _, e := range f.Telegram {
		t, err := telegram.New(telegram.Config{
			Account: e.Name, Token: string(e.Token), Username: e.Username, BaseURL: e.URL, Logger: a.logger,
		})
		if c.add(e.Name, t, err) {
			c.runs(func(ctx context.Context) error { return t.Run(ctx, to) }, t.Close)
		}
	}
	for _, e := range f.Discord {
		d, err := discord.New(discord.Config{Account: e.Name, Token: string(e.Token), PublicKey: e.Key, Logger: a.logger})
		if c.add(e.Name, d, err) {
			c.runs(func(ctx context.Context) error { return d.Run(ctx, to) }, d.Close)
		}
	}
	for _, e := range f.Mattermost {
		m, err := mattermost.New(mattermost.Config{
			Account: e.Name, Token: string(e.Token), Username: e.Username, BaseURL: e.URL, Logger: a.logger,
		})
		if c.add(e.Name, m, err) {
			c.runs(func(ctx context.Context) error { return m.Run(ctx, to) }, m.Close)
		}
	}
	for _, e := range f.Matrix {
		m, err := matrix.New(matrix.Config{
			Account: e.Name, AccessToken: string(e.Token), UserID: e.User, BaseURL: e.URL, Logger: a.logger,
		})
		if c.add(e.Name, m, err) {
			c.runs(func(ctx context.Context) error { return m.Run(ctx, to) }, m.Close)
		}
	}
	for _, e := range f.Webhook {
		w, err := webhook.New(webhook.Config{Account: e.Name, URL: e.URL, Secrets: []string{string(e.Secret)}})
		if c.add(e.Name, w, err) {
			c.door(webhook.Channel, e.Name, w.Handler(to))
			c.close = append(c.close, w.Close)
		}
	}
	c.mail(f)
	return c.all, errors.Join(c.errs...)
}

// mail adds the accounts of e-mail, with a server for the mail that comes in.
func (c *accounts) mail(f adapterFile) {
	for _, e := range f.Email {
		out := email.Config{From: e.From, Host: e.Host, Port: e.Port, Username: e.Username, Password: string(e.Password)}
		if e.NoTLS {
			out.Security = email.NoTLS
		}
		m, err := email.New(out)
		if !c.add(e.Name, m, err) || e.Listen == "" {
			continue
		}
		s, err := email.NewServer(email.ServerConfig{
			Acceptance: email.Acceptance{Account: e.Name, Addresses: []string{e.From}, Senders: e.Senders, AuthServID: e.Server},
			Domain:     e.Domain, Logger: c.logger,
		}, c.to)
		c.errs = append(c.errs, err)
		if err == nil {
			c.parts = append(c.parts, func(ctx context.Context) error {
				var listen net.ListenConfig
				l, err := listen.Listen(ctx, "tcp", e.Listen)
				if err != nil {
					return err
				}
				return s.Serve(ctx, l)
			})
		}
	}
}

// add adds an adapter and reports whether it is usable.
func (c *accounts) add(name string, a adapter.Adapter, err error) bool {
	if err != nil {
		c.errs = append(c.errs, err)
		return false
	}
	c.all = append(c.all, channel.AccountAdapter{Name: name, Adapter: a})
	return true
}

func (c *accounts) door(channel, name string, h http.Handler) { c.mux.Handle("/"+channel+"/"+name, h) }

func (c *accounts) runs(run func(ctx context.Context) error, closing func()) {
	c.parts, c.close = append(c.parts, run), append(c.close, closing)
}
