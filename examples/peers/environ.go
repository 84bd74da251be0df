package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/processors/auth"
	"github.com/turntable-streams/turntable/processors/peer"
)

// The environment variables of an instance.
const (
	variableAddress  = "PEERS_ADDRESS"  // host:port of the doors
	variableSettings = "PEERS_SETTINGS" // path of the file of peer.OpenSettings
	variableKeys     = "PEERS_KEYS"     // path of the file of auth.APIKeys: who may chat and use the proxy
	variableInvoices = "PEERS_INVOICES" // what the tool invoices counts
)

// environment is the environment of the process of an instance.
func (m *member) environment(keys string) []string {
	return []string{
		variableAddress + "=" + m.address, variableSettings + "=" + m.path, variableKeys + "=" + keys,
		variableInvoices + "=" + strconv.Itoa(m.invoices),
	}
}

// instanceFrom returns the instance that the environment configures.
func instanceFrom(logger *zap.Logger) (*instance, error) {
	i := &instance{logger: logger, address: os.Getenv(variableAddress)}
	var failed [3]error
	i.settings, failed[0] = peer.OpenSettings(os.Getenv(variableSettings), peer.SettingsConfig{Logger: logger})
	i.keys, failed[1] = auth.OpenAPIKeys(os.Getenv(variableKeys), auth.APIKeyConfig{Logger: logger})
	if i.invoices, failed[2] = strconv.Atoi(os.Getenv(variableInvoices)); failed[2] != nil {
		failed[2] = fmt.Errorf("%s is not a number", variableInvoices)
	}
	return i, errors.Join(failed[:]...)
}
