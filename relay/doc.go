// Package relay runs handlers outside this program. An [Exec] is a program that is
// started for each job; it needs to know nothing of Go.
package relay
