'use strict'

exports.double = (value) => value * 2
