//go:build !unix

package relay_test

const hasSignals = false
