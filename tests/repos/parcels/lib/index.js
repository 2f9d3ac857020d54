'use strict'

const { postage } = require('./postage')
const { label } = require('./label')
const Depot = require('./depot')

module.exports = { postage, label, Depot }
