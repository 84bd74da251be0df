package main

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	mathrand "math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// member is an instance as the others and its operator know it: its ID, its address, and its configuration file.
type member struct {
	id, name string
	address  string // host:port of its doors
	invoices int    // what the tool invoices counts
	path     string // of the configuration file
	file     peersFile
}

// peersFile is a file of peer.OpenSettings.
type peersFile struct {
	Peers struct {
		Enabled       bool       `json:"enabled"`
		InstanceID    string     `json:"instanceId"`
		InstanceName  string     `json:"instanceName"`
		Outbound      []outbound `json:"outbound"`
		InboundTokens []inbound  `json:"inboundTokens"`
	} `json:"peers"`
}

// outbound is a peer that tasks are sent to, with the token that is sent.
type outbound struct {
	ID      string `json:"id"`
	BaseURL string `json:"baseUrl"`
	Token   string `json:"token"`
}

// inbound is a token that is accepted. The file has its hash only.
type inbound struct {
	ID           string   `json:"id"`
	TokenSHA256  string   `json:"tokenSha256"`
	AllowedTools []string `json:"allowedTools,omitempty"`
}

// newMember returns an instance with a free address and a configuration file in dir, which write creates.
func newMember(dir, id, name string, invoices int) (*member, error) {
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	m := &member{id: id, name: name, address: address, invoices: invoices, path: filepath.Join(dir, id+".json")}
	m.file.Peers.Enabled, m.file.Peers.InstanceID, m.file.Peers.InstanceName = true, id, name
	return m, nil
}

func (m *member) url() string { return "http://" + m.address }

// accept adds a new token to the file of m and returns it. The tasks of the holder may use the named tools although they
// come from a peer.
func (m *member) accept(holder string, tools ...string) (token string) {
	token = rand.Text()
	sum := sha256.Sum256([]byte(token))
	m.file.Peers.InboundTokens = append(m.file.Peers.InboundTokens,
		inbound{ID: holder, TokenSHA256: hex.EncodeToString(sum[:]), AllowedTools: tools})
	return token
}

// revoke removes the tokens of a holder.
func (m *member) revoke(holder string) {
	m.file.Peers.InboundTokens = slices.DeleteFunc(m.file.Peers.InboundTokens, func(in inbound) bool { return in.ID == holder })
}

// send makes m send tasks to a peer with a token.
func (m *member) send(to *member, token string) {
	o := outbound{ID: to.id, BaseURL: to.url(), Token: token}
	if i := slices.IndexFunc(m.file.Peers.Outbound, func(o outbound) bool { return o.ID == to.id }); i >= 0 {
		m.file.Peers.Outbound[i] = o
		return
	}
	m.file.Peers.Outbound = append(m.file.Peers.Outbound, o)
}

// write writes the file. A running instance uses it from its next request on. The file replaces the former one in one step, so
// that the instance never reads half of it.
func (m *member) write() error {
	content, err := json.Marshal(m.file, jsontext.Multiline(true))
	if err != nil {
		return err
	}
	next := m.path + ".next"
	return errors.Join(os.WriteFile(next, content, 0o600), os.Rename(next, m.path))
}

// The ports of the instances are below those that operating systems choose for connections, so that no other program takes
// the port of an instance that is not running.
const (
	firstPort = 15_000
	ports     = 15_000
)

// freeAddress returns a loopback address on which no program listens.
func freeAddress() (string, error) {
	var failed error
	for range 100 {
		address := net.JoinHostPort("127.0.0.1", strconv.Itoa(firstPort+mathrand.IntN(ports)))
		listener, err := net.Listen("tcp", address)
		if err == nil {
			return address, listener.Close()
		}
		failed = err
	}
	return "", failed
}
