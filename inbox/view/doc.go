// Package view is what the inbox's pages look like: components and pages over what
// package review reads. It knows neither a store nor a request, so each state of each
// component can be shown by itself.
//
// Foreign text comes in only through components that show what cannot be seen and escape
// the rest, such as Text, Long and Tree, and through display.Line in attributes and ids.
package view

//go:generate go tool templ generate -path ..
